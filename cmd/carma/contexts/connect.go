package contexts

import "carma/runner/api"

// OverTLS returns the client for the daemon of a context that is [Context.Remote], and
// sends nothing yet. A program that can obtain a user's token sets it at its start; it is
// nil in others.
var OverTLS func(Context) (*api.Client, error)

// Remote reports whether the context's daemon is reached over TLS.
func (c Context) Remote() bool {
	_, address, err := ParseHost(c.Host)
	return err == nil && address != ""
}

// Connect returns the client of a context's daemon; nothing is sent yet. The context is
// not [Local], and [OverTLS] is set if it is [Context.Remote].
func (c Context) Connect() (*api.Client, error) {
	socket, _, err := ParseHost(c.Host)
	if err != nil {
		return nil, err
	}
	if socket != "" {
		return api.NewClient(socket), nil
	}
	return OverTLS(c)
}
