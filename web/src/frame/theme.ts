/** Light or dark: remembered, else as the system has it. */
import { useSyncExternalStore } from 'react'
import type { ThemeConfig } from 'antd'

export type Theme = 'light' | 'dark'
export type ThemeChoice = Theme | 'system'

const KEY = 'danlu.theme'
const listeners = new Set<() => void>()
const system = window.matchMedia('(prefers-color-scheme: dark)')
const still = window.matchMedia('(prefers-reduced-motion: reduce)')
let choice: ThemeChoice = (localStorage.getItem(KEY) as ThemeChoice | null) ?? 'system'

const changed = (): void => {
  document.documentElement.dataset.theme = theme()
  listeners.forEach((listener) => listener())
}
system.addEventListener('change', changed)

export const theme = (): Theme => (choice === 'system' ? (system.matches ? 'dark' : 'light') : choice)
export const themeChoice = (): ThemeChoice => choice

export function setTheme(chosen: ThemeChoice): void {
  choice = chosen
  localStorage.setItem(KEY, chosen)
  changed()
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, theme)
export const useThemeChoice = (): ThemeChoice => useSyncExternalStore(subscribe, themeChoice)

/** Colours are chosen for a contrast of at least 4.5 : 1 on their grounds, in both themes. */
export const tokens = (chosen: Theme): ThemeConfig => ({
  token: {
    colorPrimary: chosen === 'dark' ? '#5c9dff' : '#1858b8',
    colorLink: chosen === 'dark' ? '#7fb2ff' : '#1858b8',
    colorInfo: chosen === 'dark' ? '#5c9dff' : '#1858b8',
    colorSuccess: chosen === 'dark' ? '#5ccf7f' : '#1a7f37',
    colorWarning: chosen === 'dark' ? '#e9b44c' : '#8a5a00',
    colorError: chosen === 'dark' ? '#ff7b72' : '#c4272f',
    // Grounds of tags and alerts: what the library derives from the dark text colours is muddy.
    ...(chosen === 'dark'
      ? {}
      : {
          colorSuccessBg: '#e9f6ed',
          colorSuccessBorder: '#a5d6b3',
          colorWarningBg: '#fff5de',
          colorWarningBorder: '#e8c77d',
          colorInfoBg: '#e8f1fd',
          colorInfoBorder: '#a9c8f2',
        }),
    colorTextDescription: chosen === 'dark' ? '#a6adb8' : '#59616d',
    colorTextTertiary: chosen === 'dark' ? '#a6adb8' : '#59616d',
    colorTextPlaceholder: chosen === 'dark' ? '#8f97a3' : '#6a727d',
    ...(chosen === 'dark' ? { colorBgContainer: '#161a20', colorBgElevated: '#1c2128', colorBgLayout: '#0f1216' } : {}),
    borderRadius: 6,
    fontFamily: '-apple-system, BlinkMacSystemFont, "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif',
    fontFamilyCode: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Noto Sans Mono CJK SC", monospace',
    motion: !still.matches, // without it nothing grows into its place, where a click could miss it
    motionDurationMid: '0.12s',
    motionDurationSlow: '0.16s',
  },
  components: {
    ...(chosen === 'dark' ? { Button: { primaryColor: '#0b1220', dangerColor: '#0b1220' }, Dropdown: { colorPrimary: '#9cc4ff' } } : {}),
    // The column by which a table is sorted: a hint, not a stripe.
    Table: chosen === 'dark' ? { bodySortBg: '#191e25', headerSortActiveBg: '#232a33', headerSortHoverBg: '#2a323c' } : { bodySortBg: '#fbfcfd' },
    Layout: { headerHeight: 48, headerPadding: '0 16px', siderBg: chosen === 'dark' ? '#161a20' : '#ffffff', bodyBg: chosen === 'dark' ? '#0f1216' : '#f4f6f9' },
    Menu: { itemHeight: 36, darkItemBg: '#161a20', darkSubMenuItemBg: '#161a20', darkItemSelectedBg: '#1d4380', darkItemSelectedColor: '#ffffff' },
  },
})
document.documentElement.dataset.theme = theme()
