/** Sign-in stands in place of the page that was asked for, so that signing in leads back to it. */
import { Alert, Button, Card, Form, Input, Typography } from 'antd'
import { useEffect, useState } from 'react'
import { KubeError, messageOf, OIDC_CALLBACK, signIn, startOidc, type SignInWay } from '../kube'
import { useWords } from '../i18n'
import { LanguageButton, ThemeButton } from './Preferences'
import { words } from './words'

interface Props {
  ways: readonly SignInWay[]
  expired: boolean
  /** why an address that was to sign in did not */
  problem: string | undefined
  onSignedIn: () => void
}

export default function SignIn({ ways, expired, problem, onSignedIn }: Props) {
  const w = useWords(words)
  useEffect(() => {
    document.title = `${w('signIn')} · ${w('product')}`
  }, [w])
  const [error, setError] = useState<string>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ token }: { token: string }): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await signIn(token.trim())
      onSignedIn()
    } catch (refused) {
      const wrong = refused instanceof KubeError && refused.code === 401
      setError(wrong ? w('tokenWrong') : w('signInFailed', { message: messageOf(refused) }))
    } finally {
      setBusy(false)
    }
  }
  const [leaving, setLeaving] = useState(false)
  const leave = async (): Promise<void> => {
    setLeaving(true)
    try {
      await startOidc(location.pathname === OIDC_CALLBACK ? '/' : location.pathname + location.search)
    } catch (refused) {
      setError(w('signInFailed', { message: messageOf(refused) }))
      setLeaving(false)
    }
  }
  return (
    <main className="sign-in">
      <div className="sign-in-tools">
        <LanguageButton />
        <ThemeButton />
      </div>
      <Card className="sign-in-card">
        <img src="/favicon.svg" width={48} height={48} alt="" />
        <Typography.Title level={1} style={{ fontSize: 24, marginTop: 8 }}>
          {w('product')}
        </Typography.Title>
        {problem && <Alert type="warning" showIcon message={problem} style={{ marginBottom: 16 }} />}
        {expired && <Alert type="info" showIcon message={w('expired')} style={{ marginBottom: 16 }} />}
        {ways.includes('token') && (
          <Form layout="vertical" onFinish={(values: { token: string }) => void submit(values)} requiredMark={false}>
            <Typography.Paragraph type="secondary">{w('signInLead')}</Typography.Paragraph>
            <Form.Item
              name="token"
              label={w('token')}
              rules={[{ required: true, message: w('tokenMissing') }]}
              {...(error ? { validateStatus: 'error' as const, help: error } : {})}
            >
              <Input.Password autoFocus autoComplete="off" />
            </Form.Item>
            <Button type="primary" htmlType="submit" block loading={busy}>
              {w('signIn')}
            </Button>
            <Typography.Paragraph type="secondary" style={{ marginTop: 12 }}>
              {w('tokenHint')}
            </Typography.Paragraph>
          </Form>
        )}
        {ways.includes('oidc') && (
          <Button block loading={leaving} onClick={() => void leave()}>
            {w('oidc')}
          </Button>
        )}
      </Card>
    </main>
  )
}
