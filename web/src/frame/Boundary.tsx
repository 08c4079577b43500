/** A page that fails says so in words; the frame around it stays usable. */
import { Button, Result } from 'antd'
import { Component, type ReactNode } from 'react'
import { messageOf } from '../kube'
import { useWords } from '../i18n'
import { words } from './words'

function Broken({ error }: { error: unknown }) {
  const w = useWords(words)
  return (
    <Result
      status="warning"
      title={w('broken')}
      subTitle={w('brokenHelp', { message: messageOf(error) })}
      extra={
        <Button type="primary" onClick={() => location.reload()}>
          {w('reload')}
        </Button>
      }
    />
  )
}

export class Boundary extends Component<{ children: ReactNode; at: string }, { error: unknown; at: string }> {
  override state = { error: undefined as unknown, at: this.props.at }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  // Another page is another try.
  static getDerivedStateFromProps(props: { at: string }, state: { at: string }) {
    return props.at === state.at ? null : { error: undefined, at: props.at }
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <Broken error={this.state.error} />
  }
}
