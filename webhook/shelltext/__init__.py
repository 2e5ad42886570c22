"""Shell as text: where its commands stand, without running any of it."""
