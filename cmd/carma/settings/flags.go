package settings

import (
	"carma/mapper/rules"
	"slices"

	"github.com/spf13/pflag"
)

// AddFlags adds a flag for each of the named keys; without names, for all keys.
// The flags have no default value of their own: [Load] reads them.
func AddFlags(flags *pflag.FlagSet, names ...string) {
	defaults := Default()
	for _, k := range keys {
		if len(names) > 0 && !slices.Contains(names, k.name) {
			continue
		}
		p := k.at(&defaults)
		f := flags.VarPF(&value{k: k, text: rules.Format(p)}, k.name, "", k.usage)
		if k.byPolicy() {
			f.DefValue = "" // carma config prints the default
		}
		switch p.(type) {
		case *bool:
			f.NoOptDefVal = "true"
		case *string:
			if k.name == "socket" || k.name == "data-dir" {
				f.DefValue = "" // depends on the user; carma config prints it
			}
		}
	}
}

// value is the text of a flag. It is checked when it is set.
type value struct {
	k    key
	text string
}

func (v *value) String() string { return v.text }

func (v *value) Type() string {
	var c Config
	return rules.KindOf(v.k.at(&c))
}

func (v *value) Set(s string) error {
	var c Config
	if err := rules.Parse(v.k.at(&c), s); err != nil {
		return err
	}
	v.text = s
	return nil
}

func isOurs(f *pflag.Flag) bool {
	_, ok := f.Value.(*value)
	return ok
}
