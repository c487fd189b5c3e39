//go:build e2e && failpoints

package test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"carma/runner/api"
)

// loadFaults are overloads.
var loadFaults = []fault{
	{name: "10,000 connections", inject: func(l *lab) string {
		crowd := gather(l.t, l.socket, 54321, 10_000)
		l.api = api.NewClient(l.socket) // this client must get a connection too
		l.submit(program("meanwhile", "exit:0"))
		l.ends("meanwhile", "succeeded")
		in := crowd.made
		eventually(l.t, "all above user-connections are turned away", func() bool { in = crowd.open(); return in <= 512 })
		crowd.leave()
		if crowd.made != 10_000 {
			l.t.Errorf("%d connections were made", crowd.made)
		}
		return fmt.Sprintf("%d made by one user, %d let in; submissions work", crowd.made, in)
	}},
	{name: "log flood of 3,000,000 lines", inject: func(l *lab) string {
		l.submit(program("flood", "count:3000000"))
		l.submit(program("meanwhile", "exit:0"))
		l.ends("meanwhile", "succeeded")
		l.ends("flood", "succeeded")
		kept, noted := l.flood("flood")
		if kept+noted != 3_000_000 {
			l.t.Errorf("%d lines kept, %d noted", kept, noted)
		}
		return fmt.Sprintf("%d lines kept, %d noted as left out", kept, noted)
	}},
	{name: "5,000 submissions at once", inject: func(l *lab) string {
		var failed atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				c := api.NewClient(l.socket)
				for j := range 50 {
					s := program(fmt.Sprintf("many-%d-%d", i, j), "exit:0")
					s.Delay = 24 * 365 * time.Hour // they should be kept, not run
					if _, err := c.Submit(context.Background(), s); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		all.Wait()
		l.more = 5000
		l.kill()
		l.up()
		there := 0
		for _, t := range l.tell() {
			if strings.HasPrefix(t.Name, "many-") && t.Phase == "held" {
				there++
			}
		}
		if there != 5000 || failed.Load() > 0 {
			l.t.Errorf("%d submissions failed, %d tasks are there", failed.Load(), there)
		}
		return "all there after kill -9"
	}},
}
