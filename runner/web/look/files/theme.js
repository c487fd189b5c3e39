// Runs before the first paint, so that the page does not flash in the other theme.
try {
  const theme = localStorage.getItem('carma-theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
} catch { /* storage is off: the system's theme it is */ }
