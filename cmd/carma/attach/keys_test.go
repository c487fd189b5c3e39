package attach

import "testing"

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		keys  string
		typed []string
		sent  string
		left  bool
	}{
		{DefaultKeys, []string{"ls\n", "\x10", "\x11"}, "ls\n", true},
		{DefaultKeys, []string{"a\x10b\x11"}, "a\x10b\x11", false},
		{DefaultKeys, []string{"\x10\x10\x11"}, "\x10", true},
		{DefaultKeys, []string{"\x10"}, "", false}, // kept back until the next key
		{"x", []string{"abx"}, "ab", true},
		{"a,a,b", []string{"aaab"}, "a", true},
		{"a,a,b", []string{"aac"}, "aac", false},
		{"ctrl-],q", []string{"\x1dq"}, "", true},
	} {
		keys, err := ParseKeys(c.keys)
		if err != nil {
			t.Fatal(err)
		}
		k, sent, left := keyReader{keys: keys}, "", false
		for _, typed := range c.typed {
			var s []byte
			s, left = k.pass([]byte(typed))
			sent += string(s)
		}
		if sent != c.sent || left != c.left {
			t.Errorf("%s, typed %q: sent %q, left %v", c.keys, c.typed, sent, left)
		}
	}
	for _, wrong := range []string{"", "ctrl-", "ctrl-1", "ctrl-p,", "pq", "strg-p"} {
		if _, err := ParseKeys(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
