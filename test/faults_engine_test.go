//go:build e2e && failpoints

package test

import (
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"carma/runner/api"
)

// engineFaults happen to the daemon, its engine and its containers.
var engineFaults = []fault{
	{name: "daemon killed ten times", inject: func(l *lab) string {
		for range 10 {
			l.kill()
			l.up()
		}
		return "adopted"
	}},
	{name: "engine killed", own: true, inject: func(l *lab) string {
		l.own.kill()
		l.engineBack()
		return "containers go on (live-restore)"
	}},
	{name: "engine restarted", own: true, engine: []string{}, excused: true, inject: func(l *lab) string {
		l.own.end()
		l.engineBack()
		for _, name := range []string{"shrinks", "grows", "blocks"} {
			l.sees(name, "another attempt", func(t api.Task) bool { return len(t.Attempts) > 1 && t.Phase == "running" })
		}
		return "the engine ends its containers: their tasks run again, blameless"
	}},
	{name: "engine hung for 10 s", own: true, inject: func(l *lab) string {
		_ = l.own.cmd.Process.Signal(unix.SIGSTOP)
		time.Sleep(10 * time.Second)
		_ = l.own.cmd.Process.Signal(unix.SIGCONT)
		return "nothing noticed by the tasks"
	}},
	{name: "engine and daemon killed together", own: true, inject: func(l *lab) string {
		l.kill()
		l.own.kill()
		l.engineBack()
		l.up()
		return "adopted"
	}},
	{name: "bridge gone", own: true, inject: func(l *lab) string {
		l.own.inNamespace(lookPath(l.t, "ip"), "link", "delete", "docker0")
		var waiting []string
		for i := range 5 {
			waiting = append(waiting, fmt.Sprint("waits-", i))
			l.submit(program(waiting[i], "exit:0"))
		}
		eventually(l.t, "the cause is known", func() bool {
			w, err := l.api.Why(l.t.Context(), waiting[4])
			return err == nil && strings.Contains(fmt.Sprint(w), "the network bridge of the containers is gone")
		})
		l.own.kill()
		l.engineBack()
		for _, name := range waiting {
			if t := l.ends(name, "succeeded"); len(t.Attempts) > 2 {
				l.t.Errorf("%s has %d attempts", name, len(t.Attempts))
			}
		}
		l.more = len(waiting)
		return "nothing is launched; all go on by themselves once the engine was restarted"
	}},
	{name: "image deleted", own: true, inject: func(l *lab) string {
		waits := program("waits", "exit:0")
		waits.Delay = time.Hour // 6 s of the clock
		l.submit(waits)
		for _, ref := range []string{tool, image} {
			if _, err := l.own.seen.cli.ImageRemove(l.t.Context(), ref, client.ImageRemoveOptions{Force: true}); err != nil {
				l.t.Fatal(err)
			}
		}
		l.kill()
		l.up()
		t := l.ends("waits", "failed")
		l.own.copyImage(tool)
		return "what runs goes on, over a restart too; what waits fails: " + t.Reason
	}},
	{name: "container paused", inject: func(l *lab) string {
		id := l.container("blocks")
		if _, err := l.engine.cli.ContainerPause(l.t.Context(), id, client.ContainerPauseOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.kill()
		l.up()
		l.isRunning("blocks")
		if _, err := l.engine.cli.ContainerUnpause(l.t.Context(), id, client.ContainerUnpauseOptions{}); err != nil {
			l.t.Fatal(err)
		}
		return "adopted while paused"
	}},
	{name: "container removed from outside", inject: func(l *lab) string {
		l.submit(program("victim", "block:143"))
		l.isRunning("victim")
		if _, err := l.engine.cli.ContainerRemove(l.t.Context(), l.container("victim"), client.ContainerRemoveOptions{Force: true}); err != nil {
			l.t.Fatal(err)
		}
		return l.fate("victim")
	}},
	{name: "container killed from outside", inject: func(l *lab) string {
		l.submit(program("victim", "block:143"))
		l.isRunning("victim")
		if _, err := l.engine.cli.ContainerKill(l.t.Context(), l.container("victim"), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			l.t.Fatal(err)
		}
		return l.fate("victim")
	}},
}

// engineBack starts the engine again. Containers that it starts before it is
// watched may be missed.
func (l *lab) engineBack() {
	l.t.Helper()
	l.own.start()
	l.useEngine(l.own)
	l.unseen += 1
}

// container returns the engine's id for a task's last attempt.
func (l *lab) container(name string) string {
	l.t.Helper()
	task := l.sees(name, "its start", func(t api.Task) bool { return t.Phase == "running" })
	for _, c := range l.engine.of(l.instance()) {
		if int64(c.task) == task.ID && c.attempt == len(task.Attempts) {
			return c.id
		}
	}
	l.t.Fatalf("no container of %s", name)
	return ""
}

// fate waits for the outcome of a task whose container somebody removed. Either it runs again,
// or its reason says that somebody removed it. It does not count as lost.
func (l *lab) fate(name string) string {
	l.t.Helper()
	task := l.sees(name, "its fate", func(t api.Task) bool { return t.Finished() || len(t.Attempts) > 1 && t.Phase == "running" })
	first := task.Attempts[0]
	l.excused++
	return fmt.Sprintf("attempt 1 %s, task %s", first.Outcome, task.Phase)
}
