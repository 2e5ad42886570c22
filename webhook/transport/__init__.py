"""Below HTTP: who may connect, how much memory a connection gets, how requests are framed."""
