"""Configures Sphinx, which makes a site of the repository's pages: make docs."""

extensions = ["myst_parser"]
project = "carma"
root_doc = "README"
# Beside docs/, the pages that it links to.
include_patterns = ["*.md", "docs/**.md", "mapper/*.md", "estimator/probe/*.md", "runner/journal/*.md", "test/faults.md", "test/lab/*.md"]
exclude_patterns = [".*", "bin", "cmd", "configs", "containers", "images"]
myst_heading_anchors = 6  # as GitHub names them
suppress_warnings = ["ref.myst", "myst.xref_missing"]  # links to folders; TestLinks checks all links

html_theme = "sphinx_rtd_theme"
html_extra_path = ["api.html"]
html_copy_source = html_show_copyright = html_show_sphinx = False
html_show_search_summary = False  # it reads other files, which a browser refuses to a page on disk

# The order in which the pages are read.
menu = {
    "Start": ["docs/tour", "docs/coming-from", "docs/faq"],
    "For users": ["docs/tasks", "docs/progress", "docs/suites", "docs/estimators", "docs/monitoring"],
    "For administrators": ["docs/install", "docs/containers", "docs/kubernetes", "docs/reliability", "docs/endings", "docs/security"],
    "Scheduling": ["docs/results", "docs/replay", "test/lab/studies", "test/lab/estimates"],
    "Real GPUs": ["docs/hardware/README", "docs/hardware/h100-2026-11-26", "docs/hardware/h100-2026-11-26/kubernetes", "docs/hardware/h100-2026-11-22"],
    "How it is made": ["docs/design", "docs/glossary", "docs/decisions", "mapper/README", "runner/journal/README", "estimator/probe/README", "docs/api", "mapper/constants", "test/faults", "CHANGELOG", "CONTRIBUTING", "SECURITY"],
}


def add_menu(app, page, source):
    """Adds the menu to the first page: on GitHub a toctree would be shown as text."""
    if page == root_doc:
        for part, pages in menu.items():
            source[0] += "\n```{toctree}\n:hidden:\n:caption: %s\n\n%s\n```\n" % (part, "\n".join(pages))


def setup(app):
    app.connect("source-read", add_menu)
