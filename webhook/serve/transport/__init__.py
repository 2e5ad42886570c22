"""Below HTTP: accepting connections, the memory they may use, and bounds on requests."""
