"""Edit YAML as text: give a document another value, and keep every byte that need not change.

`preview -o diff` is a diff of your file, and not of what a library makes of it. That is why this
package is written by hand: ruamel.yaml, told to keep all that it can, changes 56 of 97 real
manifests by reading and writing them. Nothing that is edited here is trusted: the text is read
back, and must have the new value. docs/yaml-editing.md has the measurements, how it works, and
where it gives up.
"""
