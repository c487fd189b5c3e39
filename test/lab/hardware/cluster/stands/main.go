// Command stands replaces programs that a machine without network lacks. Linked as curl
// or openssl, it does the work of that program, as far as the scripts of
// containers/kubernetes/test use it. "stands loopback ADDRESS" brings the loopback up and
// gives it a further address, which a Kubernetes needs that has no other network.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	program, args := map[string]func([]string) error{"curl": curl, "openssl": openssl}[filepath.Base(os.Args[0])], os.Args[1:]
	if program == nil && len(args) == 2 && args[0] == "loopback" {
		program, args = loopback, args[1:]
	}
	if program == nil {
		fmt.Fprintln(os.Stderr, "stands: link it as curl or openssl, or write stands loopback ADDRESS")
		os.Exit(2)
	}
	if err := program(args); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(22)
	}
}

// loopback brings lo up, and gives it the address.
func loopback(args []string) error {
	address := net.ParseIP(args[0]).To4()
	if address == nil {
		return fmt.Errorf("%s is no IPv4 address", args[0])
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	second, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := second.SetInet4Addr(address); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, second)
}

// curl knows -X, -H, --data, --data-binary @FILE, --cacert, -k and an address.
func curl(args []string) error {
	method, address, trust := http.MethodGet, "", &tls.Config{MinVersion: tls.VersionTLS12}
	header, body := http.Header{}, []byte(nil)
	for i := 0; i < len(args); i++ {
		a := args[i]
		if strings.HasPrefix(a, "https://") {
			address = a
			continue
		}
		if a == "-sS" || a == "--fail-with-body" || a == "-fs" || a == "-fsS" {
			continue
		}
		if a == "-fsk" {
			trust.InsecureSkipVerify = true // as curl -k: to see that something answers
			continue
		}
		if i++; i == len(args) {
			return fmt.Errorf("%s: not known, or without its value", a)
		}
		switch v := args[i]; a {
		case "-X":
			method = v
		case "-H":
			name, value, _ := strings.Cut(v, ":")
			header.Add(name, strings.TrimSpace(value))
		case "--data":
			body = []byte(v)
		case "--data-binary":
			var err error
			if body, err = os.ReadFile(strings.TrimPrefix(v, "@")); err != nil {
				return err
			}
		case "--cacert":
			b, err := os.ReadFile(v)
			if err != nil {
				return err
			}
			trust.RootCAs = x509.NewCertPool()
			trust.RootCAs.AppendCertsFromPEM(b)
		default:
			return fmt.Errorf("%s: not known", a)
		}
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header
	r.Header.Set("User-Agent", "curl/8.0") // the apiserver lays its JSON out for curl
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trust}, Timeout: time.Minute}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	if answer.StatusCode >= http.StatusBadRequest {
		err = errors.Join(err, errors.New(answer.Status))
	}
	return err
}

// openssl knows "genrsa -out FILE BITS", "rsa -in FILE -pubout -out FILE" and "rand -hex BYTES".
func openssl(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "genrsa":
		bits, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		return os.WriteFile(args[2], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	case len(args) == 6 && args[0] == "rsa":
		b, err := os.ReadFile(args[2])
		if err != nil {
			return err
		}
		block, _ := pem.Decode(b)
		if block == nil {
			return fmt.Errorf("%s: no key in it", args[2])
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKIXPublicKey(key.(*rsa.PrivateKey).Public())
		if err != nil {
			return err
		}
		return os.WriteFile(args[5], pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
	case len(args) == 3 && args[0] == "rand":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		b := make([]byte, n)
		if _, err := rand.Read(b); err != nil {
			return err
		}
		fmt.Println(hex.EncodeToString(b))
		return nil
	}
	return fmt.Errorf("%q: not known", args)
}
