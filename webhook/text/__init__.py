"""How a preview is rendered: the JSON form, text for people, a unified diff."""
