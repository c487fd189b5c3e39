package suspend

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// maxPairs is the largest number of GPUs of one process, because a request must fit into
// a line.
const maxPairs = 32

// parseUUID returns the 16 bytes of a GPU's UUID (CUuuid).
func parseUUID(text string) (id [16]byte, err error) {
	digits, ok := strings.CutPrefix(text, "GPU-")
	parts := strings.Split(digits, "-")
	plain := strings.Join(parts, "")
	raw, hexErr := hex.DecodeString(plain)
	if !ok || len(parts) != 5 || len(digits) != 36 || hexErr != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%q is not the UUID of a whole GPU, which reads GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", text)
	}
	return [16]byte(raw), nil
}

// checkPairs returns an error if a list of moves is invalid.
func checkPairs(pairs []Pair) error {
	if len(pairs) > maxPairs {
		return fmt.Errorf("%d GPUs to move; at most %d", len(pairs), maxPairs)
	}
	olds, news := map[[16]byte]bool{}, map[[16]byte]bool{}
	for _, p := range pairs {
		from, err := parseUUID(p.Old)
		if err != nil {
			return err
		}
		to, err := parseUUID(p.New)
		if err != nil {
			return err
		}
		if olds[from] {
			return fmt.Errorf("%s is named twice as a GPU to move from", p.Old)
		}
		if news[to] {
			return fmt.Errorf("%s is named twice as a GPU to move to", p.New)
		}
		olds[from], news[to] = true, true
	}
	return nil
}
