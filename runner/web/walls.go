package web

import (
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"carma/internal/lazyregexp"
)

// policy is the page's Content-Security-Policy. It allows the page's own files only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// harden sets the security headers of a response.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}

// ownHost reports whether a request's host is a loopback address, and not a name that a
// name server can point to this machine. Any port is allowed, because ssh can forward
// any. localhost is refused: it has two addresses, and another user may listen at the one
// that the page does not use, with scripts in the page's origin.
func ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains([]string{"127.0.0.1", "::1", "[::1]"}, host)
}

// OwnHost passes only requests to a loopback address or localhost. It refuses web sites
// whose names were made to point to this machine.
func OwnHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, _, err := net.SplitHostPort(req.Host)
		if err != nil {
			name = req.Host
		}
		if ip := net.ParseIP(strings.Trim(name, "[]")); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is served at 127.0.0.1 only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// ownOrigin reports whether the page itself makes a request, not another page in the same
// browser. Browsers send Origin with all methods except GET.
func ownOrigin(req *http.Request) bool {
	if opens(req) {
		return true
	}
	if site := req.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && !(site == "none" && req.Method == http.MethodGet) {
		return false
	}
	origin := req.Header.Get("Origin")
	if origin == "" {
		return req.Method == http.MethodGet
	}
	return origin == "http://"+req.Host
}

// opens reports whether a request follows a link to the page, from a chat or a terminal
// in the browser. The files that such a request returns contain no secrets, and cannot be
// shown in frames.
func opens(req *http.Request) bool {
	return req.Method == http.MethodGet && !strings.HasPrefix(req.URL.Path, "/v1/") && req.URL.Path != "/session" &&
		req.Header.Get("Sec-Fetch-Mode") == "navigate" && req.Header.Get("Sec-Fetch-Dest") == "document" && req.Header.Get("Origin") == ""
}

// allowed contains the routes of the API that the page uses: views, and changes of a task
// that can be undone or that end it. It has no submission, no terminal and no routes for
// administrators.
var allowed = map[string]func() *regexp.Regexp{
	http.MethodGet:  lazyregexp.New(`^/v1/(live/events|timeline|info|gpus|quotas|tasks|tasks/[^/]+(/why|/logs|/history)?)$`),
	http.MethodPost: lazyregexp.New(`^/v1/tasks/[^/]+/(stop|hold|release|suspend|resume)$`),
}

func mayAsk(req *http.Request) bool {
	routes := allowed[req.Method]
	// The path is parsed here and by the API, so allow only paths that both parse alike.
	return routes != nil && routes().MatchString(req.URL.Path) && routes().MatchString(req.URL.EscapedPath()) && !strings.Contains(req.URL.Path, "..")
}
