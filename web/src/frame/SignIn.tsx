/** Sign-in stands in place of the page that was asked for, so that signing in leads back to it. */
import { Alert, Button, Card, Form, Input, Typography } from 'antd'
import { useEffect, useState } from 'react'
import { KubeError, messageOf, oidcStart, signIn, type SignInWay } from '../kube'
import { useWords } from '../i18n'
import { LanguageButton, ThemeButton } from './Preferences'
import { words } from './words'

interface Props {
  ways: readonly SignInWay[]
  expired: boolean
  onSignedIn: () => void
}

export default function SignIn({ ways, expired, onSignedIn }: Props) {
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
        {new URLSearchParams(location.search).get('problem') === 'link' && <Alert type="warning" showIcon message={w('oldLink')} style={{ marginBottom: 16 }} />}
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
          <Button block href={oidcStart(location.pathname + location.search)}>
            {w('oidc')}
          </Button>
        )}
      </Card>
    </main>
  )
}
