"""The settings that a container's command makes: variables, its user, and its memlock limit.

`env` of a pod is only the beginning: a command exports variables, starts MPI ranks with `-x`, clears
the environment with `su -`, and changes to another user. What the process that carries the traffic
finally gets, innermost first:

    setting                                                       source
    -------                                                       ------
    assignments, `export`, `env`, `unset` in the rank's own       POSIX.1-2024, XCU 2.9.1 and 2.14;
      script                                                      env(1)
    `mpirun -x NAME=VALUE`; Hydra's `-env`, then its `-genv`      mpirun(1) 4.1, run; mpiexec.hydra 4.0, run
    what the launcher had itself: `-x NAME`, and for ranks in     as above; over ssh, Open MPI passes on
      its own container all of it                                 only -x and OMPI_* (schizo_ompi.c)
    the container's `env`; not for children of sshd, `su -`,      sshd(8), su(1), sudoers(5), runuser(1)
      `sudo` without -E, `env -i`
    NCCL: the file $NCCL_CONF_FILE or ~/.nccl.conf, then          nccl, src/misc/param.cc
      /etc/nccl.conf

A setting is certain, or it is only possible: in a branch, in a function, or in a command after which
others run. A value with an expansion (`$X`) is known only when the container runs. Nothing here
raises, and the scanner's limits bound the work on a pod.

Start with `CommandReader` in `reader`; `process` has the state of a process, `builtins`, `users` and
`launch_options` what words do to it.
"""
