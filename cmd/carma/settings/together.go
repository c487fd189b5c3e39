package settings

import (
	"errors"
	"fmt"
)

// together contains the rules between several keys. A key's own check cannot look at other
// keys, because later keys are not set yet. These rules are checked when all keys are set. An
// error names the first key in names that somebody has set.
var together = []struct {
	names []string
	check func(*Config) error
}{
	{[]string{"listen-certificate", "listen-key"}, func(c *Config) error {
		if (c.ListenCertificate == "") != (c.ListenKey == "") {
			return errors.New("listen-certificate and listen-key belong together; write both, or none")
		}
		return nil
	}},
	{[]string{"listen"}, func(c *Config) error {
		if c.Listen != "off" && c.Driver != "kubernetes" {
			return fmt.Errorf("%s: users come over TLS with tokens of a cluster, and the driver is %s; write driver: kubernetes, or leave listen out", c.Listen, c.Driver)
		}
		return nil
	}},
	{[]string{"memory-limit"}, func(c *Config) error {
		if c.MemoryLimit == "mps" && c.MPS == "off" {
			return errors.New("mps needs MPS, which is off; write mps: user, or memory-limit: auto")
		}
		return nil
	}},
}

// checkTogether checks a configuration whose keys are all valid separately.
func checkTogether(c *Config, origins Origins) error {
	for _, rule := range together {
		for _, name := range rule.names {
			if origins[name].Kind == FromDefault {
				continue
			}
			if err := rule.check(c); err != nil {
				return &Error{origins[name], name, err.Error()}
			}
			break
		}
	}
	return nil
}
