// Command page makes pictures of the daemon's page in Chromium, in the light and in the
// dark theme:
//
//	page -width 1280 -height 800 'http://127.0.0.1:8011/#token' docs/page
//
// writes docs/page-light.png and docs/page-dark.png.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// there is whether the overview shows GPUs with tasks, and expected starts.
const there = `document.querySelectorAll('.card .part').length > 4`

func main() {
	width := flag.Int64("width", 1280, "of the window, in pixels")
	height := flag.Int64("height", 800, "of the window, in pixels")
	settle := flag.Duration("settle", 12*time.Second, "`time` until charts have points and starts are foreseen")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "page: write an address and the beginning of the files' names")
		os.Exit(2)
	}
	if err := take(flag.Arg(0), flag.Arg(1), *width, *height, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func take(address, files string, width, height int64, settle time.Duration) error {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		return errors.New("no Chromium: apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		return err
	}
	for began := time.Now(); ; {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](there))
		if err != nil {
			return err
		}
		if is {
			break
		}
		if ctx.Err() != nil || time.Since(began) > 30*time.Second {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			return fmt.Errorf("no GPUs with tasks on the page, which says: %s", text)
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(settle)
	for _, theme := range []string{"light", "dark"} {
		metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1}
		if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
			return err
		}
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // charts are drawn again
		shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if err := write(files+"-"+theme+".png", shot); err != nil {
			return err
		}
	}
	return nil
}

// write keeps a picture as small as PNG can.
func write(file string, shot []byte) error {
	is, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, is); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", file, out.Len())
	return os.WriteFile(file, out.Bytes(), 0o644)
}
