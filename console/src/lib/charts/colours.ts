/** Colours of the style as a canvas needs them: resolved for the appearance of now. */

export function colourOf(element: HTMLElement, name: string): string {
  const former = element.style.color;
  element.style.color = `var(${name})`;
  const colour = getComputedStyle(element).color;
  element.style.color = former;
  return colour;
}

/** Calls when the appearance changes, by the switch or by the system. */
export function onAppearance(act: () => void): () => void {
  const observer = new MutationObserver(act);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  const media = matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', act);
  return () => {
    observer.disconnect();
    media.removeEventListener('change', act);
  };
}
