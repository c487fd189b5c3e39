package attach

import (
	"bytes"
	"fmt"
	"strings"
)

// DefaultKeys detach from a terminal, like docker's.
const DefaultKeys = "ctrl-p,ctrl-q"

// ParseKeys parses keys in docker's notation: letters, and ctrl- with a letter or one of
// @ [ \ ] ^ _, separated by commas.
func ParseKeys(text string) ([]byte, error) {
	var keys []byte
	for _, key := range strings.Split(text, ",") {
		ctrl, is := strings.CutPrefix(key, "ctrl-")
		switch {
		case is && len(ctrl) == 1 && (ctrl[0] >= 'a' && ctrl[0] <= 'z' || strings.Contains(`@[\]^_`, ctrl)):
			keys = append(keys, strings.ToUpper(ctrl)[0]-'@')
		case !is && len(key) == 1:
			keys = append(keys, key[0])
		default:
			return nil, fmt.Errorf("%q is no key; write for example %s", key, DefaultKeys)
		}
	}
	return keys, nil
}

// keyReader finds the keys with which a user detaches.
type keyReader struct {
	keys []byte // if empty, no key detaches
	had  int    // number of last keys that match; they are kept back
}

// pass returns the part of the typed bytes to send. leaves is set once all keys have been
// typed.
func (k *keyReader) pass(typed []byte) (send []byte, leaves bool) {
	if len(k.keys) == 0 {
		return typed, false
	}
	for _, b := range typed {
		for k.had > 0 && b != k.keys[k.had] { // no match; the last keys may begin a new match
			left := k.had - 1
			for left > 0 && !bytes.Equal(k.keys[:left], k.keys[k.had-left:k.had]) {
				left--
			}
			send = append(send, k.keys[:k.had-left]...)
			k.had = left
		}
		if b != k.keys[k.had] {
			send = append(send, b)
			continue
		}
		if k.had++; k.had == len(k.keys) {
			return send, true
		}
	}
	return send, false
}
