"""Give a document another value by edits of its text: what the value keeps, the text keeps."""
