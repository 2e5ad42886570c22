// Pause holds a pod's namespaces: it waits for a signal to end, and as process 1 of a pod that
// shares its process namespace it takes the exit status of orphans, so that none stays a zombie.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for reap() {
		}
	}
}

// Signals of one kind are merged: one SIGCHLD may stand for several children.
func reap() bool {
	pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	return err == syscall.EINTR || pid > 0
}
