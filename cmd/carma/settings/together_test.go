package settings

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestTogether checks that settings that belong together may come from the file, the
// environment and the flags, in any order, and that an incomplete pair is refused with a
// message of one line.
func TestTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		file, says string
		env        map[string]string
		args       []string
	}{
		"file":            {file: "driver: kubernetes\nlisten: 0.0.0.0:7443\nlisten-key: /b\nlisten-certificate: /a\n"},
		"environment":     {file: "driver: kubernetes\n", env: map[string]string{"CARMA_LISTEN": "0.0.0.0:7443", "CARMA_LISTEN_CERTIFICATE": "/a", "CARMA_LISTEN_KEY": "/b"}},
		"flags":           {args: []string{"--listen-certificate=/a", "--listen-key=/b", "--listen=0.0.0.0:7443", "--driver=kubernetes"}},
		"mixed":           {file: "listen-key: /b\n", env: map[string]string{"CARMA_DRIVER": "kubernetes"}, args: []string{"--listen-certificate=/a", "--listen=0.0.0.0:7443"}},
		"no key":          {file: "driver: kubernetes\nlisten-certificate: /a\n", says: "listen-certificate and listen-key belong together"},
		"no certificate":  {file: "driver: kubernetes\nlisten-key: /a\n", says: "listen-certificate and listen-key belong together"},
		"another driver":  {file: "listen: 0.0.0.0:7443\n", says: "the driver is docker"},
		"limit of no MPS": {file: "memory-limit: mps\nmps: off\n", says: "mps needs MPS"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, hermetic(t), tc.file)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			AddFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			c, _, err := Load(flags)
			switch {
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%v, want %q", err, tc.says)
			case tc.says == "" && (err != nil || c.Listen != "0.0.0.0:7443" || c.ListenCertificate != "/a" || c.ListenKey != "/b"):
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// TestChecksAlone checks that no key's own check depends on another key, because later keys are
// not set yet.
func TestChecksAlone(t *testing.T) {
	for _, k := range keys {
		if k.check == nil || k.ofMapper() {
			continue
		}
		for _, other := range keys {
			if other.name == k.name || other.ofMapper() {
				continue
			}
			as, odd := Default(), Default()
			at := reflect.ValueOf(other.at(&odd)).Elem()
			if at.Kind() == reflect.String {
				at.SetString("/something-else")
			} else {
				at.SetZero()
			}
			if one, two := k.check(&as), k.check(&odd); (one == nil) != (two == nil) {
				t.Errorf("the check of %s depends on %s: %v and %v", k.name, other.name, one, two)
			}
		}
	}
}
