"""The settings that a container's command makes: variables, its user, and its memlock limit.

A pod's `env` is only the beginning: a command exports variables, starts MPI ranks with `-x`, clears
the environment with `su -`, and changes to another user. The process that carries the traffic gets,
innermost first:

    setting                                                    source
    -------                                                    ------
    assignments, `export`, `env`, `unset` in its own script    POSIX.1-2024, XCU 2.9.1 and 2.14;
                                                               env(1) of coreutils 9.1
    `mpirun -x NAME=VALUE`; Hydra's `-env`, then its `-genv`   run: Open MPI 4.1.4, MPICH 4.0.2
    what the launcher has, for ranks in its own container      run, as above
    for ranks over ssh: `-x NAME`, and Open MPI's OMPI_*       schizo_ompi.c of Open MPI 4.1
    the container's `env`; not for children of sshd, `su -`,   sshd(8), su(1), sudoers(5);
      `sudo` without -E, `env -i`                              run: util-linux 2.38, sudo 1.9
    NCCL: $NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf      nccl, src/misc/param.cc

A setting is certain, or it is only possible: in a branch, in a function, or in a command after
which others run. A value with an expansion (`$X`) is known only when the container runs. Nothing
here raises, and the scanner's limits bound the work on a pod.

Start with `CommandReader` in `reader`; `process` has the state of a process, and `builtins`,
`users` and `launch_options` what words do to it. `effective` applies the result to `env`.
"""
