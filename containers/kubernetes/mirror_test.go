package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
)

// eventually waits until the inventory of the driver satisfies a condition.
func eventually(t *testing.T, d *Driver, what string, ok func(Inventory, error) bool) {
	t.Helper()
	var last Inventory
	var err error
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		if last, err = d.Inventory(ctx); ctx.Err() == nil && ok(last, err) {
			return
		}
	}
	t.Fatalf("%s: %+v, %v", what, last, err)
}

// closed returns the reason why a node takes no pods, or "-" if the node does not exist.
func closed(is Inventory, node string) string {
	for _, n := range is.Nodes {
		if n.Name == node {
			return n.Closed
		}
	}
	return "-"
}

// read returns how many times all objects of each kind were read.
func (c *cluster) read() (out []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range []string{"Node", "ResourceSlice", "ResourceClaim", "Lease"} {
		out = append(out, c.whole[kind])
	}
	return out
}

// watching returns a cluster of two nodes and a driver that watches it.
func watching(t *testing.T, edit ...func(*cluster)) (*cluster, *Driver) {
	c := newCluster(t)
	for _, e := range edit {
		e(c)
	}
	c.node("node-1")
	c.node("node-2")
	c.offer("node-1", "GPU-a")
	d := c.driver(t, Options{})
	t.Cleanup(func() { _ = d.Close() })
	eventually(t, d, "at first", func(is Inventory, err error) bool {
		return err == nil && len(is.Nodes) == 2 && len(is.Devices) == 1
	})
	return c, d
}

func cordon(c *cluster, node int, on bool) { c.alter(func() { c.nodes[node].Spec.Unschedulable = on }) }

// TestStreams checks that the driver sees each kind of change without reading all objects
// again.
func TestStreams(t *testing.T) {
	for what, listsOnly := range map[string]bool{"a stream from the beginning": false, "a list, then a stream": true} {
		t.Run(what, func(t *testing.T) {
			c, d := watching(t, func(c *cluster) { c.listsOnly = listsOnly })
			cordon(c, 0, true)
			eventually(t, d, "a node changed", func(is Inventory, _ error) bool { return closed(is, "node-1") == "its node node-1 is cordoned" })
			c.node("node-0")
			eventually(t, d, "a node came", func(is Inventory, _ error) bool { return closed(is, "node-0") == "" && is.Nodes[0].Name == "node-0" })
			c.alter(func() {
				c.nodes = slices.DeleteFunc(c.nodes, func(n corev1.Node) bool { return n.Name == "node-2" })
			})
			eventually(t, d, "a node went", func(is Inventory, _ error) bool { return closed(is, "node-2") == "-" })
			c.offer("node-0", "GPU-b", "GPU-c")
			eventually(t, d, "GPUs came", func(is Inventory, _ error) bool { return len(is.Devices) == 3 && is.Devices[0].UUID == "GPU-b" })
			c.alter(func() { c.slices = c.slices[1:] })
			eventually(t, d, "GPUs went", func(is Inventory, _ error) bool { return len(is.Devices) == 2 })
			c.alter(func() { c.foreign = append(c.foreign, foreignClaim(7<<30)) })
			eventually(t, d, "a claim came", func(is Inventory, _ error) bool { return len(is.Claims) == 1 && is.Claims[0].Bytes == 7<<30 })
			c.alter(func() { c.foreign = nil })
			eventually(t, d, "a claim went", func(is Inventory, _ error) bool { return len(is.Claims) == 0 })
			for _, text := range []string{"one", "two"} {
				if _, err := d.Tell(t.Context(), "node-1", text, nil); err != nil {
					t.Fatal(err)
				}
				eventually(t, d, "an agent tells", func(is Inventory, _ error) bool { return len(is.Reports) == 1 && is.Reports[0].Text == text })
			}
			if got := c.read(); !slices.Equal(got, []int{1, 1, 1, 1}) {
				t.Errorf("all was read %v times", got)
			}
		})
	}
}

// TestStreamsBroken checks that broken watches continue at the same place.
func TestStreamsBroken(t *testing.T) {
	c, d := watching(t)
	for i := range 6 {
		on := i%2 == 0
		cordon(c, 0, on)
		eventually(t, d, "after a break", func(is Inventory, err error) bool { return err == nil && (closed(is, "node-1") != "") == on })
		c.CloseClientConnections()
	}
	if got := c.read(); got[0] != 1 { // a kind without changes may be read again
		t.Errorf("all was read %v times", got)
	}
}

// TestStreamsForgotten: the cluster does not have a watch's resourceVersion any more. The
// driver reads all objects again, and notices deletions in the meantime. It does not read again
// if a bookmark has given it a newer version.
func TestStreamsForgotten(t *testing.T) {
	c, d := watching(t)
	away := make(chan struct{})
	c.mu.Lock()
	c.fault = func(*http.Request) int {
		select {
		case <-away:
			return 0
		default:
			return http.StatusServiceUnavailable
		}
	}
	c.mu.Unlock()
	c.CloseClientConnections()
	eventually(t, d, "away", func(_ Inventory, err error) bool { return errors.Is(err, containers.ErrUnavailable) })
	c.alter(func() { c.nodes, c.slices = c.nodes[:1], nil })
	c.forget()
	close(away)
	eventually(t, d, "read again", func(is Inventory, err error) bool {
		return err == nil && len(is.Nodes) == 1 && len(is.Devices) == 0
	})
	before := c.read()
	if before[0] < 2 || before[1] < 2 {
		t.Errorf("all was read %v times", before)
	}

	cordon(c, 0, true) // slices do not change
	eventually(t, d, "goes on", func(is Inventory, _ error) bool { return closed(is, "node-1") != "" })
	c.bookmarks()
	cordon(c, 0, false) // this event follows the bookmark on the same watch, so the bookmark has been read
	eventually(t, d, "behind the bookmark", func(is Inventory, _ error) bool { return closed(is, "node-1") == "" })
	c.mu.Lock()
	c.oldest = c.version - 1 // the bookmark's version
	c.mu.Unlock()
	before = c.read()
	c.CloseClientConnections()
	cordon(c, 0, true)
	eventually(t, d, "goes on from the bookmark", func(is Inventory, err error) bool { return err == nil && closed(is, "node-1") != "" })
	if after := c.read(); after[0] != before[0] {
		t.Errorf("nodes were read %d times, then %d", before[0], after[0])
	}
}

// TestStreamsAway checks that Inventory fails at once, with the right error, if the cluster
// does not answer, and that it shows the changes in the meantime when the cluster answers
// again.
func TestStreamsAway(t *testing.T) {
	c, d := watching(t)
	for _, tc := range []struct {
		code int
		says string
	}{{http.StatusServiceUnavailable, ""}, {http.StatusForbidden, "rights"}, {http.StatusTooManyRequests, ""}} {
		c.mu.Lock()
		c.fault = func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/nodes") {
				return tc.code
			}
			return 0
		}
		c.mu.Unlock()
		c.CloseClientConnections()
		eventually(t, d, "away", func(_ Inventory, err error) bool {
			if tc.says != "" {
				fault, ok := errors.AsType[*containers.StartFault](err)
				return ok && fault.Code == tc.says
			}
			return errors.Is(err, containers.ErrUnavailable) && strings.HasPrefix(err.Error(), "read the cluster's nodes")
		})
		cordon(c, 1, tc.code == http.StatusForbidden)
		c.mu.Lock()
		c.fault = nil
		c.mu.Unlock()
		eventually(t, d, "back", func(is Inventory, err error) bool {
			return err == nil && (closed(is, "node-2") != "") == (tc.code == http.StatusForbidden)
		})
	}
}

// TestStreamsEnd checks that closing the driver ends its watches, even if the cluster never
// answered. No caller waits forever.
func TestStreamsEnd(t *testing.T) {
	c := newCluster(t)
	c.fault = func(*http.Request) int { return http.StatusServiceUnavailable }
	d := c.driver(t, Options{})
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	if _, err := d.Inventory(ctx); !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
