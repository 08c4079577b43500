/** Opens the page that an object serves in a new tab. */
import { App } from 'antd'
import { useCallback } from 'react'
import { useWords } from '../i18n'
import { openApp } from '../kube'
import { useSaid } from '../why/useSaid'
import { words } from './words'

export function useOpenApp(): (namespace: string, kind: string, name: string) => Promise<void> {
  const w = useWords(words)
  const said = useSaid()
  const { notification } = App.useApp()
  return useCallback(
    async (namespace, kind, name) => {
      // The tab is opened at the click, or the browser takes it for an advertisement.
      const tab = window.open('about:blank', '_blank')
      try {
        const { url } = await openApp(namespace, kind, name)
        if (tab) {
          tab.opener = null
          tab.location.href = url
        } else location.href = url
      } catch (error) {
        tab?.close()
        notification.error({ message: w('openFailed', { message: said.error(error) }) })
      }
    },
    [notification, w, said],
  )
}
