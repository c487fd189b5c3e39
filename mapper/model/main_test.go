package model

import (
	"flag"
	"os"
	"testing"
)

// TestMain fixes the seed of the random tests unless one is given, because some tests fail if
// their runs do not cover a certain case, which happens with a few seeds. make properties uses
// random seeds.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == "0" && os.Getenv("RAPID_SEED") == "" {
		if err := seed.Value.Set("1"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
