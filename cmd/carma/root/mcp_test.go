package root

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"carma/cmd/carma/cli"
)

// TestMCP: carma mcp speaks the protocol on its streams, and ends when the client does.
func TestMCP(t *testing.T) {
	d := newFakeDaemon(filepath.Join(t.TempDir(), "s"))
	if err := d.listen(); err != nil {
		t.Fatal(err)
	}
	defer d.close()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Execute(cli.New(in, out, io.Discard, "1.2.3"), []string{"mcp", "--socket", d.socket}, nil)
		out.Close()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.InitializeResult().ServerInfo; got.Name != "carma" || got.Version != "1.2.3" {
		t.Error(got)
	}
	if r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "list"}); err != nil || r.IsError {
		t.Error(r, err)
	}
	d.hangUp()
	if r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "list"}); err != nil || !r.IsError || r.Content[0].(*mcp.TextContent).Text != "no carma daemon at "+d.socket {
		t.Error(r, err)
	}
	_ = s.Close()
	select {
	case code := <-ended:
		if code != 0 {
			t.Error("it ended with", code)
		}
	case <-ctx.Done():
		t.Error("it has not ended")
	}
}
