package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// write makes a pair of files, signed by a new authority.
func write(t *testing.T, certificate, key string) []byte {
	t.Helper()
	a, err := Own(t.TempDir(), []string{"lab.example", "10.0.0.7"})
	if err != nil {
		t.Fatal(err)
	}
	pair, _ := a.Get(nil)
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Duration(len(block.Bytes)) * time.Second)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	return pair.Certificate[0]
}

// TestFiles checks that a renewed pair of files is served to the next connection, and that a
// pair with only one renewed file is not.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := Files(certificate, key, nil); err == nil {
		t.Error("files that are not there")
	}
	first := write(t, certificate, key)
	var told int
	get, err := Files(certificate, key, func(error) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	is := func(want []byte) {
		t.Helper()
		for range 2 {
			got, err := get(nil)
			if err != nil || !bytes.Equal(got.Certificate[0], want) {
				t.Fatalf("another certificate, %v", err)
			}
		}
	}
	is(first)
	if err := os.WriteFile(certificate, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	is(first)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	is2 := write(t, certificate, key)
	is(is2)
}

// TestFilesOfSecret: a renewed Secret of a cluster is served, too. Its files are links by
// the link ..data, which then leads to another folder.
func TestFilesOfSecret(t *testing.T) {
	dir := t.TempDir()
	renew := func(folder string) []byte {
		t.Helper()
		at := filepath.Join(dir, folder)
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		pair := write(t, filepath.Join(at, "tls.crt"), filepath.Join(at, "tls.key"))
		if err := os.Symlink(folder, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		return pair
	}
	first := renew("..1")
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	get, err := Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range []func() []byte{func() []byte { return first }, func() []byte { return renew("..2") }} {
		want := next()
		if got, err := get(nil); err != nil || !bytes.Equal(got.Certificate[0], want) {
			t.Errorf("another certificate than %x, %v", want[:8], err)
		}
	}
}

// TestOwn: clients that trust the authority's file accept the daemon under each of its names,
// also after a restart and years later.
func TestOwn(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "tls"), time.Now()
	a, err := own(dir, []string{"lab.example", "10.0.0.7"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(a.CA)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	accepted := func(a *Authority) *tls.Certificate {
		t.Helper()
		pair, err := a.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"lab.example", "10.0.0.7"} {
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: now}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: "other.example", CurrentTime: now}); err == nil {
			t.Error("a name that is not its own")
		}
		return pair
	}
	first := accepted(a)
	if accepted(a) != first {
		t.Error("each connection gets another certificate")
	}
	now = now.Add(leafFor - renewBefore + time.Hour)
	if accepted(a) == first {
		t.Error("it is not renewed")
	}
	again, err := own(dir, []string{"lab.example", "10.0.0.7"}, func() time.Time { return now })
	if err != nil || again.Fingerprint != a.Fingerprint {
		t.Fatalf("another authority after a restart: %v", err)
	}
	accepted(again)
}
