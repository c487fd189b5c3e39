// Package starts reads from containerd's events which containers are started. Tests that kill a
// daemon use it as evidence that is independent of the daemon.
package starts

import (
	"context"
	"sync"

	"github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/typeurl/v2"
)

// Follow calls heard with the id of each container that the client's containerd starts,
// one after the other, until stop is called. That closes the client.
func Follow(cli *client.Client, heard func(ctx context.Context, id string)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, _ := cli.Subscribe(ctx, `topic=="/tasks/start"`)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-stream: // is never closed
				if ev, err := typeurl.UnmarshalAny(e.Event); err == nil {
					if start, ok := ev.(*events.TaskStart); ok {
						heard(ctx, start.ContainerID)
					}
				}
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		_ = cli.Close()
	}
}
