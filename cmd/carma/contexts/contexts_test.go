package contexts

import (
	"strings"
	"testing"

	"carma/cmd/carma/settings"
)

// TestChoose checks that CARMA_HOST takes precedence over CARMA_SOCKET, and --socket over both.
func TestChoose(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	config := settings.Config{Socket: "/run/x"}
	for _, row := range []struct {
		host      string
		kind      settings.Kind
		want, err string
	}{
		{"", settings.FromEnv, "unix:///run/x", ""},
		{"https://lab:7443", settings.FromEnv, "https://lab:7443", ""},
		{"unix:///run/y", settings.FromEnv, "unix:///run/y", ""},
		{"https://lab:7443", settings.FromFlag, "unix:///run/x", ""},
		{"http://lab:7443", settings.FromEnv, "", "in the clear"},
		{"lab:7443", settings.FromEnv, "", "write https://host:port"},
	} {
		t.Setenv(HostVariable, row.host)
		c, _, err := Choose("", config, settings.Origins{"socket": {Kind: row.kind}})
		if err == nil && (row.err != "" || c.Host != row.want) || err != nil && (row.err == "" || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%+v: %+v, %v", row, c, err)
		}
	}
}
