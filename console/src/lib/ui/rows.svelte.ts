/** TanStack's virtual rows as Svelte 5 reads them. */

import { Virtualizer, elementScroll, observeElementOffset, observeElementRect, type VirtualItem } from '@tanstack/virtual-core';

/** The rows in sight of a box that scrolls. */
export class VisibleRows {
  items = $state.raw<VirtualItem[]>([]);
  total = $state(0);
  private readonly virtualizer: Virtualizer<HTMLElement, Element>;

  constructor(private readonly box: () => HTMLElement | null, private readonly height: number) {
    this.virtualizer = new Virtualizer<HTMLElement, Element>(this.options(0));
  }

  /** Watches the box; call it when the box is there, and its answer when it goes. */
  mount(): () => void {
    const end = this.virtualizer._didMount();
    this.virtualizer._willUpdate();
    this.read();
    return end;
  }

  setCount(count: number): void {
    this.virtualizer.setOptions(this.options(count));
    this.virtualizer._willUpdate();
    this.read();
  }

  show(index: number): void {
    this.virtualizer.scrollToIndex(index);
  }

  private read(): void {
    this.items = this.virtualizer.getVirtualItems();
    this.total = this.virtualizer.getTotalSize();
  }

  private options(count: number) {
    return {
      count,
      getScrollElement: this.box,
      estimateSize: () => this.height,
      overscan: 12,
      observeElementRect,
      observeElementOffset,
      scrollToFn: elementScroll,
      onChange: () => this.read(),
    };
  }
}
