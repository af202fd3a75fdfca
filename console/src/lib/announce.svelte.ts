/** What screen readers are told of changes of state: politely, and at most once in five seconds. */

const PACE_MS = 5_000;

class Announcements {
  text = $state('');
  private last = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** The newest text wins where several come within the pace. */
  say(text: string): void {
    clearTimeout(this.timer);
    const wait = Math.max(0, this.last + PACE_MS - Date.now());
    this.timer = setTimeout(() => {
      this.last = Date.now();
      this.text = text;
    }, wait);
  }
}

export const announcements = new Announcements();

export function announce(text: string): void {
  announcements.say(text);
}
