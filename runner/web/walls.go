package web

import (
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// policy is the page's Content-Security-Policy: its own files, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// harden sets the headers of every answer.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}

// ownHost reports whether a request was made to this machine by a name that no name
// server can give to another one. The port may be any: ssh forwards from any.
func ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains([]string{"127.0.0.1", "localhost", "::1", "[::1]"}, host)
}

// ownOrigin reports whether the page itself makes a request, not another page in the
// same browser. Browsers send Origin with everything but GET.
func ownOrigin(req *http.Request) bool {
	if site := req.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && !(site == "none" && req.Method == http.MethodGet) {
		return false
	}
	origin := req.Header.Get("Origin")
	if origin == "" {
		return req.Method == http.MethodGet
	}
	return origin == "http://"+req.Host
}

// The routes of the API that the page uses: what shows, and what changes a task in a
// way that can be undone, or ends it. No submission, no terminal, nothing of admins.
var allowed = map[string]*regexp.Regexp{
	http.MethodGet:  regexp.MustCompile(`^/v1/(live/events|timeline|info|gpus|quotas|tasks|tasks/[^/]+(/why|/logs)?)$`),
	http.MethodPost: regexp.MustCompile(`^/v1/tasks/[^/]+/(stop|hold|release|suspend|resume)$`),
}

func mayAsk(req *http.Request) bool {
	routes := allowed[req.Method]
	// The path is read twice, here and by the API: only one that both read alike.
	return routes != nil && routes.MatchString(req.URL.Path) && routes.MatchString(req.URL.EscapedPath()) && !strings.Contains(req.URL.Path, "..")
}
