// Command peer is a service of the suites in tests: a server that counts, and the
// programs that ask it.
//
//	peer serve ADDRESS [FILE]   counts the requests of /count, in FILE if it is given;
//	                            /crash ends it with 3; /file?name=F answers with a file
//	peer get URL...             prints the answers
//	peer check URL              a health check
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fail("serve ADDRESS [FILE], get URL... or check URL")
	}
	switch args := os.Args[2:]; os.Args[1] {
	case "serve":
		serve(args)
	case "get", "check":
		for _, url := range args {
			body, err := get(url)
			if err != nil {
				fail(err)
			}
			if os.Args[1] == "get" {
				fmt.Println(strings.TrimSpace(body))
			}
		}
	default:
		fail("unknown order " + os.Args[1])
	}
}

func fail(what any) {
	fmt.Fprintln(os.Stderr, "peer:", what)
	os.Exit(1)
}

func get(url string) (string, error) {
	c := http.Client{Timeout: 5 * time.Second}
	res, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, body)
	}
	return string(body), err
}

func serve(args []string) {
	file := ""
	if len(args) > 1 {
		file = args[1]
	}
	var mu sync.Mutex
	count := 0
	if text, err := os.ReadFile(file); err == nil {
		count, _ = strconv.Atoi(string(text))
	}
	http.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		count++
		if file != "" {
			if err := os.WriteFile(file, []byte(strconv.Itoa(count)), 0o644); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		fmt.Fprintln(w, "count", count)
	})
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, r.FormValue("name")) })
	http.HandleFunc("/user", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, os.Getuid(), os.Getgid()) })
	http.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		text, _ := os.ReadFile("/proc/self/status")
		_, _ = w.Write(text)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {})
	fmt.Println("listening at", args[0])
	fail(http.ListenAndServe(args[0], nil))
}
