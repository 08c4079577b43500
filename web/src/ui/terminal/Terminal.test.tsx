/** How a terminal ends, and that it can be had again. What stands on its screen is a browser's to tell. */
import { screen, waitFor } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { ended, pod } from '../../testing/objects'
import { LANGUAGES, open, server } from '../../testing/page'
import type { FakeSocket } from '../../testing/socket'

const ADDRESS = '/build/default/pods/box?tab=terminal'

async function connected(): Promise<FakeSocket> {
  await waitFor(() => expect(server.execs).toHaveLength(1))
  const [socket] = server.execs
  socket!.open()
  await waitFor(() => expect(socket!.sent).not.toHaveLength(0)) // how large the terminal is
  return socket!
}

const WORDS = {
  en: { none: 'The container is not running, so there is no terminal.', exit: 'The session has ended: exit code 0', code: 'The session has ended: exit code 130', broken: 'The session has ended: the connection is closed', again: 'Connect again', name: 'Terminal box / main' },
  zh: { none: '容器没有在运行，无法打开终端。', exit: '会话已结束：退出码 0', code: '会话已结束：退出码 130', broken: '会话已结束：连接已断开', again: '重新连接', name: '终端 box / main' },
} as const

describe.each(LANGUAGES)('a terminal (%s)', (language) => {
  const words = WORDS[language]

  it('is not offered where nothing runs', async () => {
    server.put(pod('box', ended(0)))
    open(ADDRESS, language)
    expect(await screen.findByText(words.none)).toBeTruthy()
    expect(server.execs).toHaveLength(0)
  })

  it.each([
    ['exit', { status: 'Success' }],
    ['code', { status: 'Failure', reason: 'NonZeroExitCode', message: 'command terminated with exit code 130', details: { causes: [{ reason: 'ExitCode', message: '130' }] } }],
    ['broken', undefined],
  ] as const)('says how it ended: %s', async (word, status) => {
    server.put(pod('box'))
    open(ADDRESS, language)
    const socket = await connected()
    expect(screen.getByRole('region', { name: words.name })).toBeTruthy()
    if (status) socket.frame(3, JSON.stringify(status))
    socket.drop()
    expect(await screen.findByText(words[word])).toBeTruthy()
  })

  it('connects again when it is asked to', async () => {
    server.put(pod('box'))
    const user = open(ADDRESS, language)
    ;(await connected()).drop()
    await user.click(await screen.findByRole('button', { name: words.again }))
    await waitFor(() => expect(server.execs).toHaveLength(2))
    expect(screen.queryByText(words.broken)).toBeNull()
  })
})
