"""The settings that a container's command makes: variables, its user, and its memlock limit.

A pod's variables are only the beginning: a command exports variables, starts MPI ranks with `-x`,
clears the environment with `su -`, and changes to another user.

A setting is certain, or it is only possible: in a branch, in a function, or in a command after
which others run. A value with an expansion (`$X`) is known only when the container runs. No text of
a command raises an error, and the scanner's limits bound the work on it; a field of the pod that
has the wrong type raises ShapeError.

`reader` has all results for a pod; `reading` reads a command. `process` has the state of a
process, and `builtins`, `front_words`, `users`, `launch_options` and `engine_options` change it as
words do; `terms` searches the text of what is not read. `mounted_files` finds the files of
ConfigMaps, for `script_files` and `library_files`; `written_files` are those that a command writes.
`ranks` are started by launchers. `effective` applies the result in the order of real programs.
Start with `reader`.
"""
