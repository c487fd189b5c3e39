package notify

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/runner/api"
)

// postOffice is a small mail server: STARTTLS or TLS, PLAIN, refusals by address.
type postOffice struct {
	t        *testing.T
	addr     string
	settings *tls.Config
	roots    *tls.Config
	implicit bool // TLS from the start
	starttls bool
	password string // empty for no login
	mu       sync.Mutex
	mails    []string // recipient, then the text
	logins   int
}

func mailServer(t *testing.T, change func(*postOffice)) *postOffice {
	t.Helper()
	p := &postOffice{t: t, starttls: true}
	change(p)
	p.certificate()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p.addr = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *postOffice) certificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		p.t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		p.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	p.settings = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	p.roots = &tls.Config{RootCAs: pool}
}

// serve speaks the few words of SMTP that a client needs.
func (p *postOffice) serve(c net.Conn) {
	defer func() { c.Close() }()
	secure := p.implicit
	if secure {
		c = tls.Server(c, p.settings)
	}
	r := bufio.NewReader(c)
	say := func(format string, args ...any) { fmt.Fprintf(c, format+"\r\n", args...) }
	say("220 here")
	to, in := "", p.password == ""
	for {
		raw, err := r.ReadString('\n')
		if err != nil {
			return
		}
		text := strings.TrimRight(raw, "\r\n")
		switch word, rest, _ := strings.Cut(text, " "); strings.ToUpper(word) {
		case "EHLO":
			say("250-here")
			if p.starttls && !secure {
				say("250-STARTTLS")
			}
			if p.password != "" && secure {
				say("250-AUTH PLAIN")
			}
			say("250 8BITMIME")
		case "STARTTLS":
			say("220 go")
			c = tls.Server(c, p.settings)
			r, secure = bufio.NewReader(c), true
		case "AUTH":
			_, coded, _ := strings.Cut(rest, " ")
			raw, _ := base64.StdEncoding.DecodeString(coded)
			if in = string(raw) == "\x00ada\x00"+p.password; !in {
				say("535 secret words of the server")
				continue
			}
			p.mu.Lock()
			p.logins++
			p.mu.Unlock()
			say("235 in")
		case "MAIL":
			if to = ""; !in {
				say("530 login first")
				continue
			}
			say("250 ok")
		case "RCPT":
			switch {
			case strings.Contains(rest, "nobody@"):
				say("550 secret words of the server")
			case strings.Contains(rest, "later@"):
				say("451 secret words of the server")
			default:
				to = rest
				say("250 ok")
			}
		case "DATA":
			say("354 go")
			var b strings.Builder
			for {
				l, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if l == ".\r\n" {
					break
				}
				b.WriteString(l)
			}
			p.mu.Lock()
			p.mails = append(p.mails, to+"\n"+b.String())
			p.mu.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (p *postOffice) mailer(to ...string) *mailer {
	return &mailer{to: to, guard: guard{free: true}, host: "gpu1", roots: p.roots, by: &api.NotifyChannel{Server: p.addr, From: "carma@lab.example"}}
}

func TestMail(t *testing.T) {
	for _, test := range []struct {
		name     string
		server   func(*postOffice)
		set      func(*mailer)
		to       []string
		mails    int
		err      string
		giveUp   bool
		loggedIn int
	}{
		{name: "starttls", mails: 1},
		{name: "login", server: func(p *postOffice) { p.password = "secret" }, set: func(m *mailer) { m.by.User, m.by.Password = "ada", "secret" }, mails: 1, loggedIn: 1},
		{name: "tls", server: func(p *postOffice) { p.implicit, p.password = true, "secret" }, set: func(m *mailer) { m.by.TLS, m.by.User, m.by.Password = "tls", "ada", "secret" }, mails: 1, loggedIn: 1},
		{name: "plain", server: func(p *postOffice) { p.starttls = false }, set: func(m *mailer) { m.by.TLS = "none" }, mails: 1},
		{name: "no starttls there", server: func(p *postOffice) { p.starttls = false }, err: "the mail server has no STARTTLS; write tls: tls, or tls: none for a server of this machine", giveUp: true},
		{name: "wrong password", server: func(p *postOffice) { p.password = "other" }, set: func(m *mailer) { m.by.User, m.by.Password = "ada", "secret" }, err: "the mail server answered 535: it refuses the user or password", giveUp: true},
		{name: "one refused", to: []string{"nobody@lab.example", "ada@lab.example"}, mails: 1, err: "1 of 2 addresses: the mail server answered 550", giveUp: true},
		{name: "later", to: []string{"later@lab.example"}, err: "the mail server answered 451"},
		{name: "unknown certificate", set: func(m *mailer) { m.roots = nil }, err: "its certificate is not valid here"},
		{name: "local user", to: []string{"root"}, mails: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.server == nil {
				test.server = func(*postOffice) {}
			}
			p := mailServer(t, test.server)
			if test.to == nil {
				test.to = []string{"ada@lab.example"}
			}
			m := p.mailer(test.to...)
			if test.set != nil {
				test.set(m)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := m.deliver(ctx, write("gpu1", []Message{failed(17, 1000).Message}, true, 0))
			f, _ := err.(*failure)
			if (err == nil) != (test.err == "") || err != nil && (err.Error() != test.err || f == nil || f.final != test.giveUp) {
				t.Errorf("%v", err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.mails) != test.mails || p.logins != test.loggedIn {
				t.Errorf("%d mails, %d logins", len(p.mails), p.logins)
			}
			for _, text := range p.mails {
				if !strings.Contains(text, "Message-ID: <m-17") || !strings.Contains(text, "Subject: [gpu1] task 17 (train) failed\r\n") || !strings.Contains(text, "last words") || !strings.Contains(text, "Auto-Submitted: auto-generated") {
					t.Error(text)
				}
			}
		})
	}
}

// Nothing in a task's name becomes a header or another recipient.
func TestMailInjection(t *testing.T) {
	p := mailServer(t, func(*postOffice) {})
	m := failed(17, 1000).Message
	m.Name = "x\r\nBcc: eve@evil.example\r\n\r\nDear all\n.\r\nRCPT TO:<eve@evil.example>"
	if _, err := p.mailer("ada@lab.example").deliver(context.Background(), write("gpu1", []Message{m}, true, 0)); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	head, _, _ := strings.Cut(p.mails[0], "\r\n\r\n")
	if len(p.mails) != 1 || strings.Contains(head, "\nBcc:") || strings.Contains(head, "\nDear") || !strings.HasPrefix(head, "TO:<ada@lab.example>") {
		t.Error(p.mails)
	}
}
