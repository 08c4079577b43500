/** The small things at the top right: language, theme, help, account. */
import { BulbOutlined, GlobalOutlined, QuestionCircleOutlined, UserOutlined } from '@ant-design/icons'
import { Button, Typography } from 'antd'
import { setLanguage, useLanguage, useWords, type Language } from '../i18n'
import { DropMenu } from '../ui/popup/DropMenu'
import { DropPanel } from '../ui/popup/DropPanel'
import { useSession } from './session'
import { setTheme, useThemeChoice, type ThemeChoice } from './theme'
import { words } from './words'

export function LanguageButton() {
  const w = useWords(words)
  const chosen = useLanguage()
  return (
    <DropMenu
      menu={{
        selectable: true,
        selectedKeys: [chosen],
        items: [
          { key: 'zh', label: '中文' },
          { key: 'en', label: 'English' },
        ],
        onClick: ({ key }) => setLanguage(key as Language),
      }}
    >
      <Button type="text" icon={<GlobalOutlined />} aria-label={`${w('language')}: ${chosen === 'zh' ? '中文' : 'English'}`}>
        {chosen === 'zh' ? '中文' : 'English'}
      </Button>
    </DropMenu>
  )
}

export function ThemeButton() {
  const w = useWords(words)
  const chosen = useThemeChoice()
  return (
    <DropMenu
      menu={{
        selectable: true,
        selectedKeys: [chosen],
        items: (['light', 'dark', 'system'] as const).map((key) => ({ key, label: w(key) })),
        onClick: ({ key }) => setTheme(key as ThemeChoice),
      }}
    >
      <Button type="text" icon={<BulbOutlined />} aria-label={w('theme')} title={w('theme')} />
    </DropMenu>
  )
}

export function HelpButton() {
  const w = useWords(words)
  const { session } = useSession()
  return (
    <DropPanel
      label={w('help')}
      placement="bottomRight"
      title={w('help')}
      content={() => (
        <div style={{ maxWidth: 290 }}>
          <Typography.Paragraph>{w('helpBody')}</Typography.Paragraph>
          <Typography.Text type="secondary">
            {w('version')} {session.version}
          </Typography.Text>
        </div>
      )}
    >
      <Button type="text" icon={<QuestionCircleOutlined />} aria-label={w('help')} title={w('help')} />
    </DropPanel>
  )
}

export function AccountButton() {
  const w = useWords(words)
  const { session, leave } = useSession()
  return (
    <DropMenu
      menu={{
        items: [
          { key: 'who', disabled: true, label: `${w('signedInAs')} ${session.user.name}` },
          { type: 'divider' },
          { key: 'leave', label: w('signOut'), onClick: leave },
        ],
      }}
    >
      <Button type="text" icon={<UserOutlined />} aria-label={w('account')} title={session.user.name} />
    </DropMenu>
  )
}
