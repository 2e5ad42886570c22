"""What a preview looks like: the JSON form, text for people, a unified diff."""
