package compose

import (
	"reflect"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// TestEveryKey: there is a rule for every key that the loader reads. So no key is
// dropped silently, even if the loader learns new ones.
func TestEveryKey(t *testing.T) {
	checkKeys(t, "", reflect.TypeFor[types.Config](), topKeys)
	if n := checkKeys(t, "services", reflect.TypeFor[types.ServiceConfig](), serviceKeys); n < 130 {
		t.Errorf("only %d keys of services were checked", n)
	}
}

// notKeys are fields of the loader that are no key of a file.
var notKeys = map[string]bool{"services.name": true}

// checkKeys compares the fields of a type with a table, and the types below with
// the tables below.
func checkKeys(t *testing.T, at string, of reflect.Type, rules map[string]rule) int {
	t.Helper()
	checked := 0
	seen := map[string]bool{}
	for _, f := range reflect.VisibleFields(of) { // with the fields of embedded types
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		key := strings.TrimPrefix(at+"."+name, ".")
		if name == "" || name == "-" || strings.HasPrefix(name, "#") || notKeys[key] {
			continue
		}
		seen[name] = true
		checked++
		r, known := rules[name]
		switch {
		case !known:
			t.Errorf("nothing is said of %s", key)
		case r.verdict != honoured && r.why == "":
			t.Errorf("%s is not honoured, and nothing says why", key)
		case r.below != nil:
			checked += checkKeys(t, key, element(f.Type), r.below)
		}
	}
	for name := range rules {
		if !seen[name] && !beyond[strings.TrimPrefix(at+"."+name, ".")] {
			t.Errorf("%s.%s is no key of the loader's", at, name)
		}
	}
	return checked
}

// beyond are keys that the loader reads into other types.
var beyond = map[string]bool{"version": true, "models": true}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}
