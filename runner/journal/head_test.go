package journal

import (
	"errors"
	"testing"
)

// TestHeadOfAnotherType: a value of the head that is no longer a number counts as damage, like
// any other changed bit; other errors of reading are not.
func TestHeadOfAnotherType(t *testing.T) {
	db, err := connectFile(t.TempDir()+"/other.db", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for sum, damaged := range map[string]bool{"x'7e9d7df8'": true, "7": false} {
		var n int64
		err := db.QueryRow("SELECT " + sum).Scan(&n)
		if got := errors.Is(new(head).sound(make([]byte, 16), n, err, func(head) int64 { return 7 }), ErrDamaged); got != damaged {
			t.Errorf("sum %s: damaged %v (%v)", sum, got, err)
		}
	}
	if err := new(head).sound(nil, 0, errors.New("disk I/O error"), head.sum); errors.Is(err, ErrDamaged) {
		t.Errorf("an error of the disk is damage: %v", err)
	}
}
