package pull

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The places are those of Linux; the variables are the same everywhere.
func TestDefault(t *testing.T) {
	home := t.TempDir()
	type places struct{ Dir, HubCache, Endpoint, Token string }
	hf := home + "/.cache/huggingface"
	write(t, filepath.Join(hf, "token"), []byte("from-file\n"))
	for _, c := range []struct {
		env  string
		want places
	}{
		{"", places{home + "/.local/share/foretoken", hf + "/hub", "https://huggingface.co", "from-file"}},
		{"XDG_DATA_HOME=/d XDG_CACHE_HOME=/c", places{"/d/foretoken", "/c/huggingface/hub", "https://huggingface.co", ""}},
		{"XDG_DATA_HOME=relative", places{home + "/.local/share/foretoken", hf + "/hub", "https://huggingface.co", "from-file"}},
		{"FORETOKEN_HOME=/ft HF_HOME=/hf HF_ENDPOINT=https://mirror/ HF_TOKEN=t", places{"/ft", "/hf/hub", "https://mirror", "t"}},
		{"HF_HOME=/hf HF_HUB_CACHE=/cache", places{home + "/.local/share/foretoken", "/cache", "https://huggingface.co", ""}},
		{"FORETOKEN_HOME=~/ft HF_HOME=~/hf", places{home + "/ft", home + "/hf/hub", "https://huggingface.co", ""}},
	} {
		t.Run(c.env, func(t *testing.T) {
			for _, name := range []string{
				"FORETOKEN_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
				"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
			} {
				t.Setenv(name, "")
			}
			t.Setenv("HOME", home)
			for v := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			s, err := Default()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, places{s.Dir, s.HubCache, s.Endpoint, s.Token}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
