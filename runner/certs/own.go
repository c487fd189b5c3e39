package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/moby/sys/atomicwriter"
)

const (
	caFor   = 10 * 365 * 24 * time.Hour
	leafFor = 90 * 24 * time.Hour
	// renewBefore is the remaining validity at which a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
)

// Authority is the daemon's own certificate authority. Clients trust its certificate, CA.
// It signs certificates only for the daemon, which never leave the daemon's memory.
type Authority struct {
	// CA is the file to give to clients. Fingerprint is the SHA-256 of its certificate, in
	// hex.
	CA, Fingerprint string

	certificate *x509.Certificate
	key         crypto.Signer
	names       []string
	now         func() time.Time

	mu   sync.Mutex
	leaf *tls.Certificate
	ends time.Time
}

// Own opens the authority in a folder, or makes one there: ca.crt, which everybody may
// read, and ca.key, which only the daemon may read. names lists the host names and
// addresses of the daemon.
func Own(dir string, names []string) (*Authority, error) { return own(dir, names, time.Now) }

func own(dir string, names []string, now func() time.Time) (*Authority, error) {
	a := &Authority{CA: filepath.Join(dir, "ca.crt"), names: names, now: now}
	keyFile := filepath.Join(dir, "ca.key")
	pair, err := tls.LoadX509KeyPair(a.CA, keyFile)
	if errors.Is(err, os.ErrNotExist) {
		if err = makeAuthority(dir, a.CA, keyFile, now()); err != nil {
			return nil, err
		}
		pair, err = tls.LoadX509KeyPair(a.CA, keyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("the daemon's certificate authority in %s: %w; without the folder the daemon makes another one", dir, err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: its key cannot sign", keyFile)
	}
	a.certificate, a.key = pair.Leaf, signer
	sum := sha256.Sum256(pair.Certificate[0])
	a.Fingerprint = hex.EncodeToString(sum[:])
	_, err = a.Get(nil)
	return a, err
}

// Get implements [Get]. It makes another certificate before the last one ends.
func (a *Authority) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.leaf != nil && now.Before(a.ends.Add(-renewBefore)) {
		return a.leaf, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	wanted, err := described("carma", now, leafFor)
	if err != nil {
		return nil, err
	}
	wanted.KeyUsage, wanted.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range a.names {
		if ip := net.ParseIP(name); ip != nil {
			wanted.IPAddresses = append(wanted.IPAddresses, ip)
		} else if name != "" {
			wanted.DNSNames = append(wanted.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.leaf, a.ends = &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}, wanted.NotAfter
	return a.leaf, nil
}

func makeAuthority(dir, caFile, keyFile string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	wanted, err := described("carma's own authority", now, caFor)
	if err != nil {
		return err
	}
	wanted.KeyUsage, wanted.IsCA, wanted.BasicConstraintsValid, wanted.MaxPathLenZero = x509.KeyUsageCertSign, true, true, true
	der, err := x509.CreateCertificate(rand.Reader, wanted, wanted, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// The certificate comes last: without it, both files are made again.
	if err := writePEM(keyFile, 0o600, "PRIVATE KEY", secret); err != nil {
		return err
	}
	return writePEM(caFile, 0o644, "CERTIFICATE", der)
}

func described(name string, now time.Time, last time.Duration) (*x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(last), // clocks differ
	}, nil
}

func writePEM(path string, mode os.FileMode, kind string, der []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	return atomicwriter.WriteFile(path, text, mode)
}
