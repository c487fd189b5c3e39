package journal

import (
	"errors"
	"testing"
)

// TestHeadOfAnotherType: a value of the head that is no number any more is damage, as any
// other changed bit.
func TestHeadOfAnotherType(t *testing.T) {
	f := freeze(t, Options{})
	f.stopCleanly(t)
	db, err := connectFile(f.dir+"/"+dataFile, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE head SET sum = x'7e9d7df8'"); err != nil {
		t.Fatal(err)
	}
	if _, err := readHead(db); !errors.Is(err, ErrDamaged) {
		t.Errorf("it reads as %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
