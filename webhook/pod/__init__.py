"""What a pod is: a plain mapping, readers that say where its shape is wrong, quantities."""
