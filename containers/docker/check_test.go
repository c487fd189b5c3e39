package docker

import (
	"net/http"
	"strings"
	"testing"
)

// TestCheckBridge: a bridge that existed and is gone is reported, but not a bridge that was
// never seen, because the engine may have it in another place.
func TestCheckBridge(t *testing.T) {
	d := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/networks/") {
			refuse(w, http.StatusNotFound, "not here")
			return
		}
		_, _ = w.Write([]byte(`{"Id":"0123456789abcdef","Name":"bridge","Driver":"bridge","Options":{"com.docker.network.bridge.name":"lab0"}}`))
	})
	there, asked := false, ""
	old := interfaceThere
	t.Cleanup(func() { interfaceThere = old })
	interfaceThere = func(name string) bool { asked = name; return there }

	if f := d.Check(t.Context()); f != nil || asked != "lab0" {
		t.Errorf("a bridge that was never seen: %+v, asked for %q", f, asked)
	}
	there = true
	if f := d.Check(t.Context()); f != nil {
		t.Errorf("a bridge that is there: %+v", f)
	}
	there = false
	if f := d.Check(t.Context()); f == nil || f.Code != "bridge-gone" || f.Remedy == "" {
		t.Errorf("a bridge that is gone: %+v", f)
	}
	there = true
	if f := d.Check(t.Context()); f != nil {
		t.Errorf("a bridge that is back: %+v", f)
	}
}
