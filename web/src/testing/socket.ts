/** One end of a WebSocket; the test, or FakeServer, holds the other. */
const { CONNECTING, OPEN, CLOSED } = { CONNECTING: 0, OPEN: 1, CLOSED: 3 }

export class FakeSocket {
  static readonly OPEN = OPEN
  readonly sent: (string | Uint8Array)[] = []
  readonly bufferedAmount = 0
  binaryType = 'blob'
  readyState = CONNECTING
  onopen: () => void = () => undefined
  onmessage: (message: { data: unknown }) => void = () => undefined
  onclose: () => void = () => undefined

  constructor(
    private readonly heard: (text: string) => void,
    private readonly lost: () => void,
  ) {}

  // The browser's side.

  send(data: string | Uint8Array): void {
    this.sent.push(data)
    if (typeof data === 'string') this.heard(data)
  }

  close(): void {
    this.drop()
  }

  // The server's side. Nothing happens before who opened it could listen.

  open(): void {
    queueMicrotask(() => {
      this.readyState = OPEN
      this.onopen()
    })
  }

  deliver(data: string): void {
    this.onmessage({ data })
  }

  /** A frame of exec: 1 is what was printed, 3 how it ended. */
  frame(channel: number, text: string): void {
    this.onmessage({ data: new Uint8Array([channel, ...new TextEncoder().encode(text)]).buffer })
  }

  drop(): void {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    this.lost()
    queueMicrotask(() => this.onclose())
  }
}
