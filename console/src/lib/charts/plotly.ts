/**
 * The drawing library of the lab's reports, the same file, loaded when somebody looks at surfaces.
 *
 * It would put its styles into the page, which the servers' policy refuses: an element of this name and class tells it that a file
 * has them (Surfaces.svelte).
 */

import address from '../../../../edge/lab/reports/assets/charts.min.js?url';

export interface Plotly {
  react(place: HTMLElement, data: unknown[], layout: unknown, config: unknown): Promise<unknown>;
  purge(place: HTMLElement): void;
}

let loading: Promise<Plotly> | undefined;

export function loadPlotly(): Promise<Plotly> {
  loading ??= new Promise((resolve, reject) => {
    const mark = document.createElement('span');
    mark.id = 'plotly.js-style-global';
    mark.className = 'no-inline-styles';
    mark.hidden = true;
    const script = document.createElement('script');
    script.src = address;
    script.onload = () => resolve((window as unknown as { Plotly: Plotly }).Plotly);
    script.onerror = () => {
      loading = undefined;
      reject(new Error(address));
    };
    document.head.append(script);
    document.body.append(mark);
  });
  return loading;
}
