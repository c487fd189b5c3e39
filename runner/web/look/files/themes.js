// The button that changes between the system's theme, light and dark.

const themes = ['auto', 'light', 'dark'];

export function themeButton(button) {
  const root = document.documentElement, named = () => { button.textContent = `Theme: ${root.dataset.theme || 'auto'}`; };
  button.addEventListener('click', () => {
    const next = themes[(themes.indexOf(root.dataset.theme || 'auto') + 1) % 3];
    if (next === 'auto') delete root.dataset.theme;
    else root.dataset.theme = next;
    try { localStorage.setItem('carma-theme', next); } catch { /* for this visit only */ }
    named();
    document.dispatchEvent(new Event('carma-theme'));
  });
  named();
}
