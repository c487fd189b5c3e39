package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"carma/runner/api"
)

// mailer sends mail by one server.
type mailer struct {
	to    []string
	by    *api.NotifyChannel // server, tls, from, user and password
	guard guard
	host  string // this machine
	roots *tls.Config
}

// deliver sends a separate mail to each address, so that a refused address does not
// affect the others. The mails' Message-ID is the letter's.
func (m *mailer) deliver(ctx context.Context, l *letter) (string, error) {
	client, err := m.client()
	if err != nil {
		return "", final("the mail server is not usable as it is set")
	}
	if err := client.DialWithContext(ctx); err != nil {
		return "", m.failed(err)
	}
	defer client.Close()
	refused := 0
	var last error
	for i, to := range m.to {
		msg, err := m.write(l, to, i)
		if err != nil {
			return "", final("the mail to %s cannot be written", to)
		}
		if err := client.Send(msg); err != nil && !msg.IsDelivered() {
			last = m.failed(err)
			if f, ok := last.(*failure); !ok || !f.final {
				return "", last // receivers who have the mail get it again
			}
			refused++
		}
	}
	if refused > 0 {
		return "", final("%d of %d addresses: %s", refused, len(m.to), last)
	}
	return "the mail server has taken it", nil
}

func (m *mailer) client() (*gomail.Client, error) {
	host, port, err := net.SplitHostPort(m.by.Server)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if m.roots != nil {
		settings.RootCAs = m.roots.RootCAs
	}
	dial := m.guard.dial
	options := []gomail.Option{
		gomail.WithPort(n), gomail.WithTimeout(10 * time.Second), gomail.WithTLSConfig(settings), gomail.WithHELO(helo(m.host)),
	}
	switch cmp.Or(m.by.TLS, "starttls") {
	case "starttls":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case "tls":
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := m.guard.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			over := tls.Client(c, settings)
			if err := over.HandshakeContext(ctx); err != nil {
				c.Close()
				return nil, err
			}
			return over, nil
		}
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	options = append(options, gomail.WithDialContextFunc(dial))
	if m.by.User != "" {
		options = append(options, gomail.WithUsername(m.by.User), gomail.WithPassword(m.by.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5))
	}
	return gomail.NewClient(host, options...)
}

// helo returns the machine's name, or localhost if a mail server cannot accept that name.
func helo(host string) string {
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "localhost"
	}
	return host
}

// write makes the mail. The library encodes characters that a header cannot have; the title
// has no line break in the first place.
func (m *mailer) write(l *letter, to string, n int) (*gomail.Msg, error) {
	msg := gomail.NewMsg()
	if err := errors.Join(msg.From(m.by.From), msg.To(address(to, m.host))); err != nil {
		return nil, err
	}
	id := l.ID
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	msg.SetMessageIDWithValue(id + "@" + helo(m.host))
	msg.SetDate()
	msg.Subject(l.Title)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // prevents automatic replies
	msg.SetGenHeader("Carma-Message", l.ID)
	text := l.Text + "\n\n-- \ncarma on " + oneLine(l.Server) + "\n"
	msg.SetBodyString(gomail.TypeTextPlain, text)
	return msg, nil
}

// address completes the address of a user of this machine.
func address(to, host string) string {
	if strings.Contains(to, "@") {
		return to
	}
	return to + "@" + helo(host)
}

// failed turns an error of the library into a failure without the server's words.
func (m *mailer) failed(err error) error {
	var send *gomail.SendError
	var said *textproto.Error
	switch {
	case errors.As(err, &send) && send.ErrorCode() > 0:
		return refusal(send.ErrorCode(), send.EnhancedStatusCode(), "")
	case errors.As(err, &said):
		what := ""
		if said.Code == 535 || said.Code == 534 || said.Code == 530 {
			what = ": it refuses the user or password"
		}
		return refusal(said.Code, "", what)
	case strings.Contains(err.Error(), "does not support STARTTLS"):
		return final("the mail server has no STARTTLS; write tls: tls, or tls: none for a server of this machine")
	case strings.Contains(err.Error(), "SMTP AUTH"), errors.Is(err, smtp.ErrNonTLSConnection):
		return final("the mail server takes no login in a way that carma knows")
	}
	return transport(err)
}

func refusal(code int, enhanced, what string) error {
	text := fmt.Sprintf("the mail server answered %d", code)
	if enhanced != "" {
		text += " (" + enhanced + ")"
	}
	return &failure{text: text + what, final: code >= 500}
}
