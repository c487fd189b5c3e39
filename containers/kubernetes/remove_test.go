package kubernetes

import (
	"net/http"
	"strings"
	"testing"
)

// TestClaimGoesLast checks that a claim is deleted after its pod, whether or not the pod has
// run. A claim that is deleted before its pod could exist forever, see [Driver.Remove].
func TestClaimGoesLast(t *testing.T) {
	for what, start := range map[string]bool{"that ran": true, "that was not started": false} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, toolImage)
			c.offer("node-1", "GPU-1")
			d := c.driver(t, Options{})
			defer d.Close()
			id, err := d.Create(t.Context(), gpuTask("x"))
			if err != nil {
				t.Fatal(err)
			}
			if start {
				if err := d.Start(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if _, err := d.Wait(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			deleted := 0
			c.mu.Lock()
			c.fault = func(r *http.Request) int {
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/resourceclaims/") {
					deleted++
					if pods, _ := c.has(); pods != 0 {
						t.Error("the claim is deleted while its pod is there")
					}
				}
				return 0
			}
			c.mu.Unlock()
			if err := d.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if pods, claims := c.has(); pods != 0 || claims != 0 || deleted != 1 {
				t.Errorf("%d pods and %d claims are left, %d times deleted", pods, claims, deleted)
			}
		})
	}
}
